#include "cmd/cmd.h"
#include "core/text/json_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COLUMNS_MAX (sizeof(((struct records *)NULL)->names) / sizeof(const char *))

void records_start(struct records *records, bool json)
{
    *records = (struct records){.json = json};
}

/* Add a cell of the table. The first row gives the columns their names. */
static void add_cell(struct records *records, const char *name, const char *text, size_t n)
{
    if (records->cells_count < COLUMNS_MAX && records->columns == 0)
        records->names[records->cells_count] = name;
    char **cells = realloc(records->cells, (records->cells_count + 1) * sizeof(*cells));
    if (cells == NULL)
        abort();
    records->cells = cells;
    cells[records->cells_count] = strndup(text, n);
    if (cells[records->cells_count++] == NULL)
        abort();
}

static struct buf *add_member(struct records *records, const char *name)
{
    buf_adds(&records->object, records->object.n == 0 ? "{" : ",");
    json_string(&records->object, str_of(name));
    buf_adds(&records->object, ":");
    return &records->object;
}

void records_text(struct records *records, const char *name, struct str text)
{
    if (records->json)
        json_text(add_member(records, name), text);
    else if (text.n == 0)
        add_cell(records, name, "-", 1);
    else
        add_cell(records, name, text.p, text.n);
}

void records_number(struct records *records, const char *name, uint64_t number)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%" PRIu64, number);
    if (records->json)
        buf_u64(add_member(records, name), number);
    else
        add_cell(records, name, text, (size_t)n);
}

void records_time(struct records *records, const char *name, int64_t ms)
{
    char text[32];
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;
    if (ms == 0 || gmtime_r(&seconds, &utc) == NULL) {
        records_text(records, name, (struct str){NULL, 0});
        return;
    }
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    records_text(records, name, str_of(text));
}

void records_bool(struct records *records, const char *name, bool value)
{
    if (records->json)
        buf_adds(add_member(records, name), value ? "true" : "false");
    else
        records_text(records, name, value ? STR("yes") : STR("no"));
}

void records_list(struct records *records, const char *name, const char *const *words, size_t count)
{
    if (records->json) {
        buf_adds(add_member(records, name), "[");
        for (size_t i = 0; i < count; i++) {
            buf_adds(&records->object, i == 0 ? "" : ",");
            json_string(&records->object, str_of(words[i]));
        }
        buf_adds(&records->object, "]");
        return;
    }
    struct buf text = {.p = NULL};
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%s%s", i == 0 ? "" : " ", words[i]);
    records_text(records, name, buf_view(&text));
    buf_free(&text);
}

void records_members(struct records *records, struct str members)
{
    if (members.n == 0)
        return;
    buf_adds(&records->object, records->object.n == 0 ? "{" : ",");
    buf_str(&records->object, members);
}

void records_end_row(struct records *records)
{
    if (records->json) {
        buf_adds(&records->object, "}\n");
        cmd_print_json(&records->object);
        buf_reset(&records->object);
    } else if (records->columns == 0) {
        records->columns = records->cells_count;
    }
}

static size_t width_of(const char *text)
{
    return cmd_print_plain(NULL, str_of(text), SIZE_MAX);
}

void records_finish(struct records *records)
{
    size_t widths[COLUMNS_MAX] = {0}, columns = records->columns;
    for (size_t c = 0; c < columns; c++)
        widths[c] = width_of(records->names[c]);
    for (size_t i = 0; i < records->cells_count && columns > 0; i++)
        if (width_of(records->cells[i]) > widths[i % columns])
            widths[i % columns] = width_of(records->cells[i]);
    for (size_t i = 0; i < columns + records->cells_count && columns > 0; i++) {
        const char *text = i < columns ? records->names[i] : records->cells[i - columns];
        bool last = i % columns == columns - 1;
        size_t shown = cmd_print_plain(stdout, str_of(text), SIZE_MAX);
        printf("%*s", last ? 0 : (int)(widths[i % columns] - shown) + 2, "");
        if (last)
            putchar('\n');
    }
    for (size_t i = 0; i < records->cells_count; i++)
        free(records->cells[i]);
    free(records->cells);
    buf_free(&records->object);
    *records = (struct records){.json = records->json};
}
