/* SPDX-License-Identifier: Apache-2.0 */
#include "api/structs.h"

#include "base/fpenv.h"
#include "ops/op.h"
#include "schema/schema.h"

typedef struct listing {
    int (*visit)(void *arg, const dq_operator_info *info);
    void *arg;
} listing;

static int visit_schema(void *arg, const dq_schema *schema)
{
    const listing *l = arg;
    dq_operator_info info = {.size = sizeof info,
                             .domain = schema->domain,
                             .name = schema->name,
                             .since_version = schema->since_version,
                             .deprecated = schema->deprecated,
                             .implemented =
                                 dq_op_find(schema->domain, schema->name, schema->since_version) != NULL};
    return l->visit(l->arg, &info);
}

dq_status dq_schemas_list(dq_schemas *schemas, int (*visit)(void *arg, const dq_operator_info *info),
                          void *arg, dq_error *err)
{
    DQ_NOT_NULL(visit);
    listing l = {visit, arg};
    dq_schemas *own = NULL;
    const dq_fpenv callers = dq_fpenv_enter();
    dq_status status = schemas ? DQ_OK : dq_schemas_create(&own, err);
    if (status == DQ_OK)
        status = dq_schemas_each(schemas ? schemas : own, visit_schema, &l, err);
    dq_schemas_free(own);
    dq_fpenv_leave(callers);
    return status;
}

size_t dq_schemas_types(dq_schemas *schemas, const dq_operator_info *info, char *buffer, size_t size)
{
    const dq_schema *schema = NULL;
    dq_schemas *own = NULL;
    dq_error err;
    dq_operator_info own_info;
    size_t length = 0;
    if (size)
        buffer[0] = '\0';
    if (dq_read_struct(DQ_STRUCT_OPERATOR_INFO, "dq_schemas_types: info", info, &own_info, &err) != DQ_OK ||
        (!schemas && dq_schemas_create(&own, &err) != DQ_OK))
        return 0;
    const dq_fpenv callers = dq_fpenv_enter(); /* Schemas are parsed on first look-up. */
    if (dq_schemas_find(schemas ? schemas : own, own_info.domain, own_info.name, own_info.since_version,
                        &schema, &err) == DQ_OK)
        length = dq_schema_types_text(schema, buffer, size);
    dq_fpenv_leave(callers);
    dq_schemas_free(own);
    return length;
}
