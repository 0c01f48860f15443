#include "core/limits/decision.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* KEYS: a count for each window. ARGV: wanted; then seconds and limit of each window. */
const char decision_script[] =
    "local time = redis.call('TIME')\n"
    "local now = tonumber(time[1])\n"
    "local counts = redis.call('MGET', unpack(KEYS))\n"
    "local granted = tonumber(ARGV[1])\n"
    "local left = 8388608\n"
    "local answer = {0, now * 1000 + math.floor(time[2] / 1000)}\n"
    "for i = 1, #KEYS do\n"
    "  local seconds, limit = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])\n"
    "  local ending, used = now - now % seconds + seconds, 0\n"
    "  if counts[i] then\n"
    "    local stored, count = struct.unpack('<I4I4', counts[i])\n"
    "    if stored >= ending and stored - seconds <= now + 2 then\n"
    "      ending, used = stored, count\n"
    "    end\n"
    "  end\n"
    "  left = math.min(left, limit - used)\n"
    "  answer[2 * i + 1], answer[2 * i + 2] = used, ending\n"
    "end\n"
    "if granted > 1 then granted = math.min(granted, math.max(1, math.floor(left / 4))) end\n"
    "granted = math.min(granted, left)\n"
    "if granted > 0 then\n"
    "  answer[1] = granted\n"
    "  for i = 1, #KEYS do\n"
    "    local ending = answer[2 * i + 2]\n"
    "    redis.call('SET', KEYS[i], struct.pack('<I4I4', ending, answer[2 * i + 1] + granted),\n"
    "               'PXAT', ending * 1000)\n"
    "  end\n"
    "end\n"
    "return answer\n";

static void push(struct decision_command *c, const char *text, size_t length)
{
    c->argv[c->argc] = text;
    c->lengths[c->argc++] = length;
}

static void push_number(struct decision_command *c, size_t i, uint32_t number)
{
    int n = snprintf(c->numbers[i], sizeof(c->numbers[i]), "%u", number);
    push(c, c->numbers[i], (size_t)n);
}

void decision_make(const struct redis_keys *keys, const char sha[DECISION_SHA + 1],
                   const char *limiter, const struct ratelimit_window *windows, size_t count,
                   uint32_t wanted, struct decision_command *out)
{
    static const char *const counts[] = {"0", "1", "2", "3", "4"};
    _Static_assert(sizeof(counts) / sizeof(counts[0]) == RATELIMIT_WINDOWS_MAX + 1,
                   "a text for each number of windows");
    out->argc = 0;
    push(out, "EVALSHA", strlen("EVALSHA"));
    push(out, sha, DECISION_SHA);
    push(out, counts[count], 1);
    for (size_t i = 0; i < count; i++)
        push(out, out->keys[i], redis_keys_of(keys, limiter, &windows[i], out->keys[i]));
    push_number(out, 0, wanted);
    for (size_t i = 0; i < count; i++) {
        push_number(out, 1 + 2 * i, windows[i].seconds);
        push_number(out, 2 + 2 * i, windows[i].limit);
    }
}

static bool number_read(const redisReply *reply, uint64_t max, uint64_t *out)
{
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0 || (uint64_t)reply->integer > max)
        return false;
    *out = (uint64_t)reply->integer;
    return true;
}

bool decision_read(const struct redisReply *reply, size_t count, struct decision_answer *out)
{
    uint64_t granted, now, used, ends;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 + 2 * count ||
        !number_read(reply->element[0], RATELIMIT_COUNT_MAX, &granted) ||
        !number_read(reply->element[1], INT64_MAX, &now))
        return false;
    out->granted = (uint32_t)granted;
    out->now_ms = (int64_t)now;
    for (size_t i = 0; i < count; i++) {
        if (!number_read(reply->element[2 + 2 * i], UINT32_MAX, &used) ||
            !number_read(reply->element[3 + 2 * i], UINT32_MAX, &ends))
            return false;
        out->used[i] = (uint32_t)used;
        out->ends[i] = (uint32_t)ends;
    }
    return true;
}

uint32_t decision_used(const char *value, size_t size, uint32_t seconds, int64_t now_s)
{
    const unsigned char *p = (const unsigned char *)value;
    uint32_t words[2] = {0, 0};
    if (size != 8)
        return 0;
    for (size_t i = 0; i < 8; i++)
        words[i / 4] |= (uint32_t)p[i] << 8 * (i % 4);
    return words[0] > now_s && (int64_t)words[0] - seconds <= now_s + RATELIMIT_LATE_SECONDS
               ? words[1]
               : 0;
}
