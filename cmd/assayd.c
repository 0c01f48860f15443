/* assayd: argv → configuration → run. */
int main(void)
{
    return 0;
}
