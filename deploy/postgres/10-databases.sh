#!/bin/sh
# Runs once, when the volume is empty. Creates the databases of the service and of Temporal;
# neither can connect to the other's. The service's belongs to millwright_owner, which only
# migrates; api and worker connect as millwright, which can define nothing.
set -eu

psql --no-psqlrc --set ON_ERROR_STOP=1 --quiet --username "$POSTGRES_USER" --dbname postgres \
  --set owner="$(cat /run/secrets/millwright_owner_password)" \
  --set millwright="$(cat /run/secrets/millwright_password)" \
  --set temporal="$(cat /run/secrets/temporal_password)" <<'SQL'
CREATE ROLE millwright_owner LOGIN PASSWORD :'owner';
CREATE ROLE millwright LOGIN PASSWORD :'millwright';
CREATE ROLE temporal LOGIN PASSWORD :'temporal';
CREATE DATABASE millwright OWNER millwright_owner TEMPLATE template0 ENCODING 'UTF8';
CREATE DATABASE temporal OWNER temporal TEMPLATE template0 ENCODING 'UTF8';
CREATE DATABASE temporal_visibility OWNER temporal TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE millwright, temporal, temporal_visibility, postgres FROM PUBLIC;
GRANT CONNECT ON DATABASE millwright TO millwright;
SQL
