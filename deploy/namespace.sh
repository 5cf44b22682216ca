#!/bin/sh
# Creates the namespace and registers perdure's search attributes. Safe to run again.
set -eu
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
    temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$NAMESPACE_RETENTION"

# The server answers "not found" for a new namespace until its cache is read anew, some 10 seconds later.
attempt=0
until temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" \
    --name AgentName --type Keyword --name AgentStatus --type Keyword --name AgentWaiting --type KeywordList; do
    attempt=$((attempt + 1))
    [ "$attempt" -lt 30 ] || exit 1
    sleep 2
done
