#!/bin/sh
# Brings Temporal's two databases to the schema of the image's version. Each step
# may be repeated.
set -eu
SQL_PASSWORD=$(cat /run/secrets/temporal_password)
export SQL_PASSWORD

# bring DATABASE SCHEMA
bring() {
  temporal-sql-tool --database "$1" setup-schema --version 0.0
  temporal-sql-tool --database "$1" update-schema --schema-name "$2"
}
bring temporal postgresql/v12/temporal
bring temporal_visibility postgresql/v12/visibility
