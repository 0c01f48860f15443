#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "t/client/report_seeds.h"

#include "store/store.h"

enum { DAY_MS = 86400000, LONG_WORD = 2048, LONG_PATH = 1900, ELEMENTS = 200, FINDINGS = 200 };

#define START_MS ((int64_t)1768471200000)

static struct store_txn *txn;
static struct json_object *real;  /* the results of a real page */
static struct json_object *names; /* what report_seeds returns */
static int64_t now_at;

/* ---- results ---- */

/* Texts of the first ${checks} checks; the others keep those of the real page. */
struct texts {
    const char *const *at;
    size_t n;
    size_t details; /* elements of each check */
    size_t checks;
};

static struct json_object *text_at(const struct texts *t, size_t i)
{
    return json_object_new_string(t->at[i % t->n]);
}

static void fill_check(struct json_object *check, const struct texts *t, size_t i)
{
    struct json_object *details = json_object_new_array();
    for (size_t k = 0; k < t->details; k++)
        json_object_array_add(details, text_at(t, i + k + 2));
    json_object_object_add(check, "passed", json_object_new_boolean(false));
    json_object_object_add(check, "value", text_at(t, i));
    json_object_object_add(check, "message", text_at(t, i + 1));
    json_object_object_add(check, "details", details);
}

static struct json_object *real_copy(void)
{
    struct json_object *copy = NULL;
    ck_assert_int_eq(json_object_deep_copy(real, &copy, NULL), 0);
    return copy;
}

static struct json_object *results_with(const struct texts *t)
{
    struct json_object *results = real_copy();
    size_t i = 0;
    json_object_object_foreach(results, id, check)
    {
        (void)id;
        if (i < t->checks)
            fill_check(check, t, i++);
    }
    return results;
}

static struct json_object *results_passed(void)
{
    struct json_object *results = real_copy();
    json_object_object_foreach(results, id, check)
    {
        (void)id;
        if (json_object_object_get(check, "passed") != NULL)
            json_object_object_add(check, "passed", json_object_new_boolean(true));
        json_object_object_add(check, "message", NULL);
    }
    return results;
}

/* The ids of the failed checks, separated by spaces. */
static char *failed_ids(struct json_object *results)
{
    char *ids = text("%s", "");
    json_object_object_foreach(results, id, check)
    {
        struct json_object *passed = json_object_object_get(check, "passed");
        if (passed != NULL && !json_object_get_boolean(passed))
            ids = text("%s%s%s", ids, *ids == '\0' ? "" : " ", id);
    }
    return ids;
}

static unsigned count_of(struct json_object *results, const char *importance)
{
    unsigned n = 0;
    json_object_object_foreach(results, id, check)
    {
        (void)id;
        struct json_object *passed = json_object_object_get(check, "passed");
        n += passed != NULL && !json_object_get_boolean(passed) &&
             strcmp(record_text(check, "importance"), importance) == 0;
    }
    return n;
}

/* ---- changes ---- */

static struct store_answer apply(const struct store_change *change)
{
    struct store_answer answer;
    store_apply(txn, change, now_at, &answer);
    ck_assert_uint_eq(answer.status, STORE_OK);
    return answer;
}

static uint64_t add_report(const char *name, const char *url)
{
    const struct store_change create = {.kind = CHANGE_REPORT_CREATE,
                                        .workspace = 1,
                                        .url = str_of(url),
                                        .name = STR("shop.example"),
                                        .code = 201};
    now_at = START_MS;
    uint64_t id = apply(&create).id;
    json_object_object_add(names, name, json_object_new_int64((int64_t)id));
    return id;
}

/* Begins the grading ${attempt} of a report, a day after the one before. */
static void begin_grading(uint64_t id, unsigned attempt)
{
    const struct store_change again = {
        .kind = CHANGE_REPORT_UPDATE, .workspace = 1, .id = id, .fields = CHANGE_REGENERATE};
    now_at += DAY_MS;
    if (attempt > 1)
        apply(&again);
}

static void finish(uint64_t id, unsigned attempt, int score, struct json_object *results,
                   const struct grading_facts *facts)
{
    const struct store_change done = {
        .kind = CHANGE_REPORT_FINISH,
        .id = id,
        .attempt = attempt,
        .status = REPORT_DONE,
        .score = score,
        .result = score >= 80   ? RESULT_GOOD
                  : score >= 50 ? RESULT_DECENT
                                : RESULT_BAD,
        .facts = *facts,
        .results = str_of(json_object_to_json_string_ext(results, JSON_C_TO_STRING_PLAIN)),
        .failed = str_of(failed_ids(results)),
        .issues_high = count_of(results, "high"),
        .issues_medium = count_of(results, "medium"),
        .issues_low = count_of(results, "low"),
    };
    begin_grading(id, attempt);
    apply(&done);
}

static void finish_failed(uint64_t id, unsigned attempt)
{
    const struct store_change failed = {
        .kind = CHANGE_REPORT_FINISH,
        .id = id,
        .attempt = attempt,
        .status = REPORT_FAILED,
        .error_code = STR("dns_failed"),
        .error_message = STR("The name of the host has no address. Check the spelling of the URL."),
    };
    begin_grading(id, attempt);
    apply(&failed);
}

/* ---- reports ---- */

static const struct grading_facts facts = {
    .http_status = 200,
    .ttfb_ms = 184,
    .load_ms = 612,
    .page_bytes = 48213,
    .protocol = STR("HTTP/2"),
    .version = STR(PACKAGE_VERSION),
};

/* ${real}, where the first ${n} failed checks have passed. */
static struct json_object *mended(unsigned n)
{
    struct json_object *results = real_copy();
    json_object_object_foreach(results, id, check)
    {
        (void)id;
        struct json_object *passed = json_object_object_get(check, "passed");
        if (n == 0 || passed == NULL || json_object_get_boolean(passed))
            continue;
        json_object_object_add(check, "passed", json_object_new_boolean(true));
        n--;
    }
    return results;
}

/* Scores go up and down, and so do the failed checks. */
static void add_history(const char *name, const char *url, unsigned gradings)
{
    static const unsigned fixed[] = {0, 2, 5, 4, 9, 12, 7, 16};
    struct grading_facts moved = facts;
    moved.final_url = STR("https://www.harbour-coffee.example/en/");
    uint64_t id = add_report(name, url);
    for (unsigned i = 0; i < gradings; i++) {
        unsigned n = fixed[i % COUNT(fixed)];
        struct json_object *results = mended(n);
        finish(id, i + 1, 44 + (int)n * 2 + (int)(i % 3), results, &moved);
        json_object_put(results);
    }
}

static void add_texts(const char *name, const char *url, const struct texts *t,
                      const char *final_url)
{
    struct grading_facts with = facts;
    struct json_object *results = results_with(t);
    uint64_t id = add_report(name, url);
    with.final_url = str_of(final_url);
    finish(id, 1, 0, results, &with);
    json_object_put(results);
}

static void add_hostile(void)
{
    static const char *const at[] = {
        "<script>window.__x = 1</script>",
        "\"><img src=x onerror=\"window.__x=2\">",
        "'><svg onload='window.__x=3'>",
        "</title></style></textarea></script><script>window.__x=4</script>",
        "</code></bdi></li></ol><iframe src=\"https://evil.example/\"></iframe>",
        "<a href=\"javascript:window.__x=5\">click</a>",
        "<base href=\"https://evil.example/\"><link rel=stylesheet href=//evil.example/x.css>",
        "<meta http-equiv=refresh content=\"0;url=https://evil.example/\">",
        "{{#findings}}{{name}}{{/findings}} {{> ../icon}} ${window.__x=6}",
        "&lt;script&gt;window.__x=7&lt;/script&gt; &#60;script&#62; &quot; &#x0;",
        "\x01\x02\x1b[31mred\x7f\r\n\tend",
        "<img src=\"https://evil.example/pixel.gif\"><style>@import '//evil.example/y.css'</style>",
    };
    const struct texts t = {at, COUNT(at), 12, 30};
    add_texts("hostile", "https://shop.example/\"><script>window.__x=8</script>", &t,
              "https://shop.example/'><img/src=x/onerror=window.__x=9>");
    add_texts("script_url", "javascript:window.__x=10", &t, "javascript:window.__x=11");
}

static void add_scripts_of_the_world(void)
{
    static const char *const at[] = {
        "\u202eevil\u202c \u202dforced\u202c \u2066isolated \u2067never closed",
        "قهوة محمصة طازجة من الميناء، تصل إلى بابك كل أسبوع مع شحن مجاني داخل المدينة",
        "קפה קלוי טרי מהנמל, מגיע אליכם הביתה בכל שבוע עם משלוח חינם",
        "港口咖啡烘焙坊每周新鲜烘焙单一产地咖啡豆礼品与订阅邮寄服务港口咖啡烘焙坊每周新鲜烘焙",
        "<a href=\"/قهوة/עברית/咖啡\">اقرأ the المزيد 更多 עוד</a>",
        "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324 tall marks",
    };
    const struct texts t = {at, COUNT(at), 6, 20};
    add_texts("world", "https://xn--mgbab2bd.example/%D9%82%D9%87%D9%88%D8%A9/%E5%92%96%E5%95%A1",
              &t, "https://xn--mgbab2bd.example/%D9%82%D9%87%D9%88%D8%A9/");
}

/* Checks of which the server has no texts, as an auditor of another version may leave. */
static void add_many_findings(const char *line)
{
    struct json_object *results = json_object_new_object();
    for (unsigned i = 0; i < FINDINGS; i++) {
        struct json_object *check = json_object_new_object();
        json_object_object_add(check, "category", json_object_new_string("seo"));
        json_object_object_add(check, "importance", json_object_new_string("low"));
        json_object_object_add(check, "passed", json_object_new_boolean(false));
        json_object_object_add(check, "message", json_object_new_string(line));
        json_object_object_add(results, text("check_%u", i), check);
    }
    finish(add_report("many_findings", "https://shop.example/findings"), 1, 3, results, &facts);
    json_object_put(results);
}

static void add_long(void)
{
    static char word[LONG_WORD + 1], path[LONG_PATH + 1], line[ELEMENTS + 1];
    memset(word, 'w', LONG_WORD);
    memset(path, 'p', LONG_PATH);
    for (size_t i = 0; i < ELEMENTS; i++)
        line[i] = "element of a long list, "[i % 24];
    const char *const words[] = {word}, *const lines[] = {line};
    add_texts("long_words", text("https://shop.example/%s", path), &(struct texts){words, 1, 3, 4},
              text("https://shop.example/%s", path));
    add_texts("many_elements", "https://shop.example/list", &(struct texts){lines, 1, ELEMENTS, 1},
              "");
    add_many_findings(line);
}

static void add_all(void)
{
    struct json_object *passed = results_passed(), *some = mended(9);
    add_history("many", "https://harbour-coffee.example/", 9);
    finish(add_report("good", "https://www.harbour-coffee.example/en/shop/espresso"), 1, 100,
           passed, &facts);
    finish_failed(add_report("failed", "https://www.harbuor-coffee.example/"), 1);
    uint64_t id = add_report("failed_later", "https://www.harbour-coffee.example/fr/");
    finish(id, 1, 61, some, &facts);
    finish_failed(id, 2);
    add_history("history", "https://www.harbour-coffee.example/en/news", 100);
    add_history("password", "https://www.harbour-coffee.example/en/members", 2);
    add_history("limited", "https://www.harbour-coffee.example/en/prices", 1);
    add_history("private", "https://www.harbour-coffee.example/en/staff", 1);
    add_hostile();
    add_scripts_of_the_world();
    add_long();
    json_object_put(passed);
    json_object_put(some);
}

struct json_object *report_seeds(const struct server *s, const struct response *graded)
{
    char why[512];
    struct store *store;
    const struct store_options options = {
        .dir = s->data, .map_size = (uint64_t)64 << 30, .max_readers = 64, .mode = STORE_WRITE};
    real = at(graded, "data.results");
    names = json_object_new_object();
    ck_assert_msg(store_open(&options, &store, why, sizeof(why)) == STORE_OK, "%s", why);
    ck_assert_int_eq(store_begin(store, &txn), STORE_OK);
    add_all();
    ck_assert_int_eq(store_commit(txn), STORE_OK);
    store_close(store);
    return names;
}
