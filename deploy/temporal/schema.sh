#!/bin/sh
# Migrates Temporal's two databases to the schema of the image's version. Can be repeated.
set -eu
SQL_PASSWORD=$(cat /run/secrets/temporal_password)
export SQL_PASSWORD

# migrate DATABASE SCHEMA
migrate() {
  temporal-sql-tool --database "$1" setup-schema --version 0.0
  temporal-sql-tool --database "$1" update-schema --schema-name "$2"
}
migrate temporal postgresql/v12/temporal
migrate temporal_visibility postgresql/v12/visibility
