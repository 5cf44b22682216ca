#!/bin/sh
# Creates Temporal's two databases and brings their schemas up to this image's version. Safe to run again: an upgrade does.
set -eu
for database in temporal temporal_visibility; do
    case $database in
        temporal) schema=temporal ;;
        *) schema=visibility ;;
    esac
    temporal-sql-tool --db "$database" create
    temporal-sql-tool --db "$database" setup-schema -v 0.0
    temporal-sql-tool --db "$database" update-schema -d "/etc/temporal/schema/postgresql/v12/$schema/versioned"
done
