-- 20,000 people of the organization of the person with the e-mail address.
CREATE TEMPORARY TABLE crowd ON COMMIT DROP AS
SELECT p.organization_id, 'idn_' || lpad(to_hex(n), 26, '0') AS id, md5(n::text) AS name FROM people p, generate_series(1, 20000) n WHERE p.email = @email;

INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
SELECT id, organization_id, 'person', left(name, 8) || ' ' || right(name, 12), now(), now() FROM crowd;

INSERT INTO people (id, organization_id, email, folded_email)
SELECT id, organization_id, name || '@example.com', name || '@example.com' FROM crowd;
