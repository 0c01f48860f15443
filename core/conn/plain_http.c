#include "core/conn/plain_http_internal.h"

#include "core/conn/connection.h"

#include <string.h>
#include <sys/socket.h>

#define START_BYTES 5 /* of a TLS record header */

/* their first bytes */
static const char *const methods[] = {"GET ",  "HEAD ", "POST ", "PUT ", "DELET",
                                      "OPTIO", "PATCH", "TRACE", "CONNE"};

static bool is_method(const char *start)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (memcmp(start, methods[i], strlen(methods[i])) == 0)
            return true;
    return false;
}

#define SENTENCE "This port expects HTTPS. Use https:// in place of http:// in the address.\n"
#define DIGITS "74"
_Static_assert(sizeof(SENTENCE) - 1 == 74, "DIGITS must be the length of SENTENCE");

/* The handshake fails afterwards, and libh2o closes the connection. */
static void answer(struct conn *c, bool without_body)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n"
                               "Content-Type: text/plain; charset=utf-8\r\n"
                               "X-Content-Type-Options: nosniff\r\n"
                               "Connection: close\r\nContent-Length: " DIGITS "\r\n\r\n" SENTENCE;
    size_t n = sizeof(text) - 1 - (without_body ? sizeof(SENTENCE) - 1 : 0);
    if (send(h2o_socket_get_fd(c->socket), text, n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        conn_linger(c);
}

static void on_message(int sent, int version, int type, const void *bytes, size_t n, SSL *ssl,
                       void *arg)
{
    (void)version, (void)arg;
    if (sent != 0 || type != SSL3_RT_HEADER)
        return;
    SSL_set_msg_callback(ssl, NULL);
    if (n < START_BYTES || !is_method(bytes))
        return;
    const h2o_socket_t *socket = BIO_get_data(SSL_get_rbio(ssl)); /* libh2o's BIO */
    answer(socket->on_close.data, memcmp(bytes, "HEAD ", START_BYTES) == 0);
}

void plain_http_answer(SSL_CTX *ctx)
{
    SSL_CTX_set_msg_callback(ctx, on_message);
}
