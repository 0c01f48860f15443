# shellcheck shell=bash disable=SC2034,SC2154 # what is shared with the scripts that read it
# What the benchmarks of a whole server share; sourced, not run. Before it: $build and $bench (the build directory, and its t/bench), and $site_port is set
# when a server is to grade. Servers listen on loopback only, all files lie in $tmp, a directory of the run's own below the build directory (a disk, where
# /tmp may be memory), which goes at the end; processes are stopped by their ids.

began=$SECONDS
umask 077
tmp=$(mktemp -d "$build/bench.XXXXXX") || exit 2
declare -A running=() # by id

stop() { # PID of a process that start started: ask, and wait until it is gone
    [ -n "${running[$1]:-}" ] || return 0
    unset "running[$1]"
    kill "$1" 2>/dev/null
    wait "$1" 2>/dev/null
    while kill -0 "$1" 2>/dev/null; do # not every bash waits for a process substitution
        sleep 0.05
    done
}

# shellcheck disable=SC2317 # the trap's
cleanup() {
    local pid
    for pid in "${!running[@]}"; do
        stop "$pid"
    done
    rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

die() {
    echo "bench: $*" >&2
    for log in "$tmp"/*.log; do
        [ -s "$log" ] && tail -n 5 "$log" >&2
    done
    exit 1
}

missed=0
row() { # WHAT MEASURED RATIO TARGET VERDICT
    printf '%-42s | %-58s | %-22s | %-12s | %s\n' "$@"
    [ "$5" != missed ] || missed=1
}

# ---- numbers ----

calc() { # EXPRESSION
    awk "BEGIN { printf \"%.4f\", $1 }"
}

spread() { # numbers on standard input → "median min max"
    sort -g | awk '{ v[NR] = $1 } END { printf "%.4f %.4f %.4f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[1], v[NR] }'
}

# MEDIAN MIN MAX at-most|at-least TARGET: inside the spread is neither
verdict() {
    awk -v median="$1" -v low="$2" -v high="$3" -v way="$4" -v target="$5" 'BEGIN {
        good = way == "at-most" ? high <= target : low >= target
        bad = way == "at-most" ? low > target : high < target
        print good ? "met" : bad ? "missed" : "inconclusive"
    }'
}

# ---- processes ----

# start NAME FD-VARIABLE COMMAND…: in the background; its standard output is read from the descriptor, its first line is in $line, its id in $started
start() {
    local name=$1 fd
    shift
    exec {fd}< <(exec "$@" 2>"$tmp/$name.log")
    started=$!
    running[$started]=1
    IFS= read -r -t 120 line <&"$fd" || die "$name did not start"
}

# start_bare FILE|-: its port in $port
start_bare() {
    start bare "${under[@]}" "$bench/run_bare" 0 "$1"
    port=${line#ready }
}

# options NAME: $options of the server NAME and of commands about it
options() {
    options=(--set "data_dir=$tmp/$1/data" --set "run_dir=$tmp/$1/run" --set user= --set store.map_size=1GiB --set listen.0.address=127.0.0.1:0
        --set 'audit.allow_private=[127.0.0.0/8]' --set "audit.ports=[$site_port]" --set audit.timeout=300s --set log.level=warn)
    mkdir -p "$tmp/$1/data" "$tmp/$1/run" # of mode 0700, as $tmp is
}

# start_server NAME WORKERS: its port in $port, its id in $server
start_server() {
    options "$1"
    start "$1" "${under[@]}" "$build/assayd" "${options[@]}" --set "workers=$2"
    server=$started
    port=${line#ready http://127.0.0.1:}
    port=${port%% *}
}

under=()
site_port=80

assay() { # NAME COMMAND…
    options "$1"
    shift
    "$build/assay" "${options[@]}" "$@" 2>>"$tmp/assay.log" || die "assay $*: $(tail -n 1 "$tmp/assay.log")"
}

key_of() { # NAME WORKSPACE: makes both
    assay "$1" workspace create "$2" >/dev/null && assay "$1" key create --workspace "$2" --name bench
}

# pids_of NAME ROLE: the processes of a running server
pids_of() {
    assay "$1" --json stats | sed -n "s/.*\"process\":\"$2\".*\"pid\":\([0-9]*\).*/\1/p"
}

member_of() { # NAME ROLE MEMBER: a number that the scoreboard has for it
    assay "$1" --json stats | sed -n "s/.*\"process\":\"$2\".*\"$3\":\([0-9]*\).*/\1/p" | head -n 1
}

# ---- HTTP ----

get_request() { # KEY ID
    printf 'GET /api/v1/reports/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n\r\n' "$2" "$1"
}

post_request() { # KEY PREFER BODY
    printf 'POST /api/v1/reports HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nPrefer: %s\r\n' "$1" "$2"
    printf 'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s' "${#3}" "$3"
}

# exchange PORT REQUEST-FILE OUT: one request, and its response as it came
exchange() {
    local fd header length=0
    exec {fd}<>"/dev/tcp/127.0.0.1/$1" || die "no connection to port $1"
    cat "$2" >&"$fd"
    : >"$3"
    while IFS= read -r -t 30 header <&"$fd"; do
        printf '%s\n' "$header" >>"$3"
        header=${header%$'\r'}
        case ${header,,} in
        content-length:*) length=${header#*: } ;;
        '') break ;;
        esac
    done
    head -c "$length" <&"$fd" >>"$3"
    exec {fd}>&-
}

load() { # PORT CONNECTIONS REQUESTS FILE: seconds; any answer but 2xx ends the run
    local seconds good other
    read -r seconds good other < <("$bench/run_load" "$@" 2>>"$tmp/load.log")
    [ "${other:-1}" = 0 ] || die "the load on port $1 failed: ${good:-0} good answers, ${other:-no} others"
    echo "$seconds"
}

short() {
    printf '%.2f' "$1"
}
