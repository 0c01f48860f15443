/*
 * Files with one secret of an operator: a key of 64 hexadecimal digits, which all nodes of a
 * cluster share, or a password. Other users may not read or write them. Any process.
 */
#ifndef ASSAY_AUTH_SECRET_FILE_H
#define ASSAY_AUTH_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_FILE_KEY 32
#define SECRET_FILE_PASSWORD 513 /* with its NUL */

/*
 * secret_file_key(path, out, why, size): the key. secret_file_password(path, out, why, size): the
 * first line. False, and the reason in ${why}, without the path.
 */
bool secret_file_key(const char *path, uint8_t out[SECRET_FILE_KEY], char *why, size_t size)
    __attribute__((warn_unused_result));
bool secret_file_password(const char *path, char out[SECRET_FILE_PASSWORD], char *why, size_t size)
    __attribute__((warn_unused_result));

#endif
