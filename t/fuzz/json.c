/*
 * Fuzz: a JSON body. What is accepted is UTF-8, json-c reads the same tree out of it that its own
 * text says again, and no limit of the scanner is passed; what json-c would have taken and we
 * refuse is refused each time for the same reason.
 */
#include "core/text/form.h"
#include "core/text/json_scan.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool so)
{
    if (!so)
        abort();
}

static unsigned depth_of(struct json_object *value)
{
    unsigned deepest = 0, depth;
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            deepest =
                (depth = depth_of(json_object_array_get_idx(value, i))) > deepest ? depth : deepest;
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, name, member)
        {
            must(utf8_valid(str_of(name)));
            deepest = (depth = depth_of(member)) > deepest ? depth : deepest;
        }
    } else
        return 0;
    return deepest + 1;
}

/*
 * what is kept and answered is made of the tree: its text must be good for the next reader, and say
 * the same
 */
static void say_again(struct json_object *tree)
{
    enum json_verdict verdict;
    size_t n;
    const char *text = json_object_to_json_string_length(
        tree, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &n);
    struct json_object *again = json_scan_parse((struct str){text, n}, JSON_SCAN_DEPTH, &verdict);
    must(verdict == JSON_SCAN_OK && json_object_equal(tree, again));
    json_object_put(again);
}

/* what is read without a tree is what the tree holds, and nothing is that json-c never sees */
static void read_flat(struct str in, struct json_object *tree)
{
    struct json_member members[4];
    struct json_object *value = NULL;
    int count = json_scan_flat(in, members, 4);
    must(count < 0 ||
         (json_object_is_type(tree, json_type_object) && json_object_object_length(tree) == count));
    for (int i = 0; i < count; i++) {
        char *name = strndup(members[i].name.p, members[i].name.n);
        must(json_object_object_get_ex(tree, name, &value) &&
             json_object_is_type(value, json_type_string) &&
             str_eq(members[i].text, (struct str){json_object_get_string(value),
                                                  (size_t)json_object_get_string_len(value)}));
        free(name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + (size == 0)); /* of its own size: a byte read too far is seen */
    memcpy(copy, data, size);
    struct str in = {copy, size};
    enum json_verdict shallow;
    struct json_fault fault;
    struct json_object *tree = json_scan_read(in, JSON_SCAN_DEPTH, &fault);
    enum json_verdict verdict = fault.verdict;
    char why[JSON_FAULT_TEXT];
    json_fault_text(&fault, why);
    read_flat(in, tree);
    must(json_scan(in, JSON_SCAN_DEPTH) == verdict && utf8_valid(str_of(why)) &&
         fault.line <= size + 1 && fault.column <= size + 1);
    if (verdict == JSON_SCAN_OK) {
        must(utf8_valid(in) && memchr(copy, '\0', size) == NULL);
        unsigned depth = depth_of(tree);
        must(depth <= JSON_SCAN_DEPTH);
        say_again(tree);
        shallow = depth == 0 ? JSON_SCAN_DEEP : json_scan(in, depth - 1);
        must(shallow != JSON_SCAN_OK); /* it is as deep as it is */
    } else
        must(tree == NULL);
    json_object_put(tree);
    free(copy);
    return 0;
}
