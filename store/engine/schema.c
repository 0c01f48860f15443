#include "store/engine/schema.h"

#define X(id, name) name,
const char *const schema_db_names[DB_COUNT] = {DATABASES(X)};
#undef X

#define X(id, db, tag, kind, text) [id] = db,
const uint8_t schema_space_db[SPACE_COUNT] = {SPACES(X)};
#undef X

#define X(id, db, tag, kind, text) [id] = tag,
const uint8_t schema_space_tag[SPACE_COUNT] = {SPACES(X)};
#undef X

bool key_read_u64(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *p = *at;
    if (p == end || *p > 8 || (size_t)(end - p) < 1U + *p)
        return false;
    uint64_t v = 0;
    unsigned bytes = *p++;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | *p++;
    *at = p;
    *out = v;
    return true;
}

bool schema_read_report(MDB_val value, struct store_report *out)
{
    const struct report_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || r->status > REPORT_FAILED || r->result > RESULT_BAD ||
        r->privacy > PRIVACY_PASSWORD)
        return false;
    const char *p = (const char *)(r + 1);
    size_t texts = (size_t)r->url_n + r->name_n + r->hash_n + r->code_n + r->message_n;
    if (value.mv_size != sizeof(*r) + texts || r->url_n > URL_MAX_BYTES)
        return false;
    out->id = r->id;
    out->workspace = r->workspace;
    out->project = r->project;
    out->version = r->version;
    out->status = r->status;
    out->privacy = r->privacy;
    out->result = r->result;
    out->score = r->score;
    out->issues_high = r->issues_high;
    out->issues_medium = r->issues_medium;
    out->issues_low = r->issues_low;
    out->issues_passed = r->issues_passed;
    out->attempt = r->attempt;
    out->created_at = r->created_at;
    out->updated_at = r->updated_at;
    out->generated_at = r->generated_at;
    out->url = (struct str){p, r->url_n};
    p += r->url_n;
    out->project_name = (struct str){p, r->name_n};
    p += r->name_n;
    out->password_hash = (struct str){p, r->hash_n};
    p += r->hash_n;
    out->error_code = (struct str){p, r->code_n};
    p += r->code_n;
    out->error_message = (struct str){p, r->message_n};
    out->results = (struct str){NULL, 0};
    return true;
}

bool schema_read_project(MDB_val value, struct store_project *out)
{
    const struct project_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || value.mv_size != sizeof(*r) + r->name_n ||
        r->name_n > NAME_MAX_BYTES)
        return false;
    uint64_t reports = counts_sum(&r->counts);
    *out = (struct store_project){
        .id = r->id,
        .workspace = r->workspace,
        .version = r->version,
        .reports = reports,
        .scored = reports - r->counts.by[RESULT_NONE],
        .score_total = r->score_total,
        .created_at = r->created_at,
        .updated_at = r->updated_at,
        .name = {(const char *)(r + 1), r->name_n},
    };
    return true;
}

bool schema_read_key(MDB_val value, const uint8_t *hash, struct store_key *out)
{
    const struct key_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || value.mv_size != sizeof(*r) + r->name_n)
        return false;
    out->id = r->id;
    out->workspace = r->workspace;
    out->scopes = r->scopes;
    out->created_at = r->created_at;
    out->last_used_at = r->last_used_at;
    out->expires_at = r->expires_at;
    out->revoked_at = r->revoked_at;
    memcpy(out->hash, hash, sizeof(out->hash));
    out->name = (struct str){(const char *)(r + 1), r->name_n};
    return true;
}

bool schema_read_workspace(MDB_val value, struct store_workspace *out)
{
    const struct workspace_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || value.mv_size != sizeof(*r) + r->name_n ||
        r->name_n > NAME_MAX_BYTES)
        return false;
    *out = (struct store_workspace){
        .id = r->id,
        .name = {(const char *)(r + 1), r->name_n},
        .created_at = r->created_at,
        .version = r->version,
        .reports = counts_sum(&r->counts),
        .projects = r->projects,
    };
    return true;
}
