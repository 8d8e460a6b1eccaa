/* SPDX-License-Identifier: Apache-2.0 */
/* A set of dqrun's own schemas, anew in each test, and what is in it. */
#ifndef DQ_TESTS_SCHEMA_SET_H
#define DQ_TESTS_SCHEMA_SET_H

#include "schema/schema.h"

#include <check.h>
#include <string.h>

static dq_schemas *set;
static dq_error err;

static const dq_schema *find(const char *name, int opset)
{
    const dq_schema *schema = NULL;
    dq_status status = dq_schemas_find(set, "", name, opset, &schema, &err);
    ck_assert_msg(status == DQ_OK, "%s", err.message);
    return schema;
}

static const dq_schema_attr *attr_of(const dq_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->attr_count; i++)
        if (strcmp(schema->attrs[i].name, name) == 0)
            return &schema->attrs[i];
    ck_abort_msg("no attribute %s", name);
    return NULL;
}

static bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

#endif
