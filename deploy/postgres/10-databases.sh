#!/bin/sh
# Runs once, when the volume is empty. Creates a role and databases for the service and
# for Temporal; neither can connect to the other's.
set -eu

psql --no-psqlrc --set ON_ERROR_STOP=1 --quiet --username "$POSTGRES_USER" --dbname postgres \
  --set millwright="$(cat /run/secrets/millwright_password)" \
  --set temporal="$(cat /run/secrets/temporal_password)" <<'SQL'
CREATE ROLE millwright LOGIN PASSWORD :'millwright';
CREATE ROLE temporal LOGIN PASSWORD :'temporal';
CREATE DATABASE millwright OWNER millwright TEMPLATE template0 ENCODING 'UTF8';
CREATE DATABASE temporal OWNER temporal TEMPLATE template0 ENCODING 'UTF8';
CREATE DATABASE temporal_visibility OWNER temporal TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE millwright, temporal, temporal_visibility, postgres FROM PUBLIC;
SQL
