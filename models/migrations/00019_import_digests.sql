-- What imports left in the fields of their entries, so that the next one recognizes what was changed since.

-- +goose Up

-- Apart from import_keys: the key of a deleted entry is free, but its deletion is a change too.
CREATE TABLE import_digests (
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    key             text NOT NULL,
    kind            text NOT NULL,
    -- By the field's name, a digest of the value that the last import which named the field left.
    digests         jsonb NOT NULL,
    PRIMARY KEY (organization_id, key)
);
