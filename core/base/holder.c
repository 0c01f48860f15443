#include "core/base/holder.h"

#include "core/base/cidr.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define INODES_MAX 64 /* of one port: with SO_REUSEPORT each worker has a socket */
#define TCP_STATE_LISTEN 0x0a

struct inodes {
    unsigned long number[INODES_MAX];
    size_t count;
};

static bool is_any(const struct ip *ip)
{
    static const struct ip any4 = {{[10] = 0xff, [11] = 0xff}}, any6;
    return memcmp(ip, &any4, sizeof(any4)) == 0 || memcmp(ip, &any6, sizeof(any6)) == 0;
}

/* The format of /proc/net/tcp and tcp6: words of 32 bits in host byte order. */
static bool read_address(const char *hex, struct ip *out)
{
    struct in6_addr address = {0};
    size_t words = strlen(hex) / 8;
    if (words != 1 && words != 4)
        return false;
    for (size_t i = 0; i < words; i++) {
        unsigned word;
        if (sscanf(hex + 8 * i, "%8x", &word) != 1)
            return false;
        memcpy((char *)&address + 4 * i, &word, sizeof(word));
    }
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = address};
    memcpy(&v4.sin_addr, &address, sizeof(v4.sin_addr));
    return ip_of(words == 1 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6, out);
}

/* The sockets of ${table} that listen on the port, at ${ip} or at all addresses. */
static void find_sockets(const char *table, const struct ip *ip, unsigned port,
                         struct inodes *found)
{
    char line[512], hex[33];
    FILE *file = fopen(table, "re");
    while (file != NULL && found->count < INODES_MAX && fgets(line, sizeof(line), file) != NULL) {
        struct ip address;
        unsigned listen_port, state;
        unsigned long inode;
        if (sscanf(line, " %*u: %32[0-9A-F]:%x %*s %x %*s %*s %*s %*u %*u %lu", hex, &listen_port,
                   &state, &inode) == 4 &&
            state == TCP_STATE_LISTEN && listen_port == port && read_address(hex, &address) &&
            (is_any(&address) || is_any(ip) || memcmp(&address, ip, sizeof(address)) == 0))
            found->number[found->count++] = inode;
    }
    if (file != NULL)
        fclose(file);
}

static bool is_one_of(const struct inodes *sockets, const char *link)
{
    unsigned long inode;
    if (sscanf(link, "socket:[%lu]", &inode) != 1)
        return false;
    for (size_t i = 0; i < sockets->count; i++)
        if (sockets->number[i] == inode)
            return true;
    return false;
}

static bool has_one_of(const char *pid, const struct inodes *sockets)
{
    char path[64], link[64];
    bool has = false;
    snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir != NULL && !has && (e = readdir(dir)) != NULL;) {
        ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
        link[n < 0 ? 0 : n] = '\0';
        has = is_one_of(sockets, link);
    }
    if (dir != NULL)
        closedir(dir);
    return has;
}

pid_t holder_of_address(const struct sockaddr *sa)
{
    struct inodes sockets = {.count = 0};
    struct ip ip;
    pid_t holder = 0;
    if (!ip_of(sa, &ip))
        return 0;
    /* both families have the port at the same offset */
    unsigned port = ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
    find_sockets("/proc/net/tcp", &ip, port, &sockets);
    find_sockets("/proc/net/tcp6", &ip, port, &sockets);
    DIR *proc = sockets.count == 0 ? NULL : opendir("/proc");
    for (struct dirent *e; proc != NULL && holder == 0 && (e = readdir(proc)) != NULL;)
        if (isdigit((unsigned char)e->d_name[0]) && has_one_of(e->d_name, &sockets))
            holder = (pid_t)strtol(e->d_name, NULL, 10);
    if (proc != NULL)
        closedir(proc);
    return holder;
}

pid_t holder_of_unix(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 ? peer.pid
                                                                                      : 0;
}

pid_t holder_of_lock(const char *path)
{
    char line[256];
    struct stat st;
    pid_t holder = 0;
    FILE *locks = stat(path, &st) == 0 ? fopen("/proc/locks", "re") : NULL;
    while (locks != NULL && holder == 0 && fgets(line, sizeof(line), locks) != NULL) {
        unsigned high, low;
        unsigned long inode;
        int pid;
        if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &high, &low, &inode) == 4 &&
            inode == st.st_ino && makedev(high, low) == st.st_dev)
            holder = pid;
    }
    if (locks != NULL)
        fclose(locks);
    return holder;
}

void holder_text(pid_t pid, char out[HOLDER_TEXT])
{
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    if (file == NULL || fgets(name, sizeof(name), file) == NULL)
        snprintf(out, HOLDER_TEXT, "another process");
    else
        snprintf(out, HOLDER_TEXT, "pid %d (%.*s)", (int)pid, (int)strcspn(name, "\n"), name);
    if (file != NULL)
        fclose(file);
}
