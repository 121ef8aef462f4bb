-- A big customer: 200 integrations with three addresses each, 10,000 people, 500 teams, 200 forms
-- of 40 questions, 100,000 notices of which 500 are unread, and the counts that charts show.
UPDATE people SET admin = true;

CREATE TEMPORARY TABLE first ON COMMIT DROP AS
SELECT i.*, n.name FROM integrations i JOIN identities n ON n.id = i.id WHERE n.name = 'Integration 1';

INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
SELECT 'idn_1' || lpad(to_hex(n), 25, '0'), i.organization_id, 'integration', 'Planned maintenance of building ' || n, now(), now()
FROM generate_series(1, 200) n, first i;

INSERT INTO integrations (id, organization_id, client_id, secret_hash, scopes)
SELECT 'idn_1' || lpad(to_hex(n), 25, '0'), i.organization_id, 'cli_' || n, i.secret_hash, i.scopes FROM generate_series(1, 200) n, first i;

INSERT INTO webhooks (id, organization_id, integration_id, slot, url, events, secret_sealed, created_at, enabled_since, enabled, off_at, off_reason)
SELECT 'whk_1' || lpad(to_hex(n * 3 + nth), 25, '0'), h.organization_id, 'idn_1' || lpad(to_hex(n), 25, '0'), nth + 1,
	'https://receiver-' || n || '.example.com/events/' || nth, h.events, h.secret_sealed, now(), now(),
	n % 20 <> 0, CASE WHEN n % 20 = 0 THEN now() END, CASE WHEN n % 20 = 0 THEN 'A delivery failed for good and none succeeded for 3 days.' END
FROM generate_series(1, 200) n, generate_series(0, 2) nth, webhooks h WHERE h.id = @webhook;

INSERT INTO webhook_health (webhook_id, last_success_at, failing_since, last_at, last_status)
SELECT id, now(), CASE WHEN id LIKE '%7' THEN now() END, now(), 200 FROM webhooks ON CONFLICT (webhook_id) DO NOTHING;

INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
SELECT 'idn_2' || lpad(to_hex(n), 25, '0'), i.organization_id, 'person', substr(md5(n::text), 1, 8) || ' ' || substr(md5(n::text), 9, 12), now(), now()
FROM generate_series(1, 10000) n, first i;

INSERT INTO people (id, organization_id, email, folded_email)
SELECT id, organization_id, email, email FROM (
	SELECT 'idn_2' || lpad(to_hex(n), 25, '0') AS id, i.organization_id, substr(md5(n::text), 1, 20) || '@example.com' AS email FROM generate_series(1, 10000) n, first i) p;

INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail, read_at)
SELECT p.organization_id, p.id, 'work_order.assigned', 'wo_' || lpad(to_hex(n), 26, '0'), now(), 'inbox', CASE WHEN n <= 99500 THEN now() END
FROM generate_series(1, 100000) n, people p WHERE p.admin ORDER BY n;

-- The first integration has permissions on 300 rooms, people on fifty or one.
INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
SELECT v.id, i.id, d.id, v.organization_id
FROM (SELECT * FROM inventory_nodes WHERE name LIKE 'Room %' ORDER BY id LIMIT 300) v, permission_definitions d, first i
WHERE d.name = 'Full' ON CONFLICT DO NOTHING;

INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
SELECT v.id, p.id, d.id, v.organization_id
FROM inventory_nodes v, permission_definitions d, (VALUES (@few::text, 50), (@one::text, 1), (@member::text, 50)) p (id, nodes)
WHERE d.name = 'Full' AND v.name = ANY (SELECT 'Room ' || g FROM generate_series(1001, 1000 + p.nodes) g);

-- Everything is due in the order of its creation, a tenth of what is open is overdue.
UPDATE work_orders SET target_date = CASE WHEN number % 100 = 0 THEN now() - interval '1 day' ELSE now() + interval '1 day' END,
	priority = CASE WHEN number % 5000 = 0 THEN 'high' ELSE 'none' END WHERE status = 'open';

DO $$ BEGIN EXECUTE (SELECT 'INSERT INTO delivery_hours SELECT id, date_trunc(''hour'', now()) - n * interval ''1 hour''' || repeat(', 40', count(*)::integer - 2)
	|| ' FROM webhooks, generate_series(0, 719) n' FROM pg_attribute WHERE attrelid = 'delivery_hours'::regclass AND attnum > 0 AND NOT attisdropped); END $$;

INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
SELECT 'idn_3' || lpad(to_hex(n), 25, '0'), i.organization_id, 'team', 'Team ' || substr(md5(n::text), 1, 12), now(), now() FROM generate_series(1, 500) n, first i;

-- The first team has everyone, the others a few people each; one person is in every team.
INSERT INTO team_members (team_id, member_id, organization_id) SELECT @team::text, id, organization_id FROM people WHERE id LIKE 'idn_2%';

INSERT INTO team_members (team_id, member_id, organization_id)
SELECT 'idn_3' || lpad(to_hex(2 + ('x' || right(id, 4))::bit(16)::integer % 499), 25, '0'), id, organization_id
FROM people WHERE id LIKE 'idn_2%' AND id NOT IN (@member, @few, @one);

INSERT INTO team_members (team_id, member_id, organization_id)
SELECT 'idn_3' || lpad(to_hex(n), 25, '0'), @member::text, i.organization_id FROM generate_series(2, 500) n, first i;

-- A hundred teams have permissions on fifty rooms each.
INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
SELECT v.id, 'idn_3' || lpad(to_hex(n), 25, '0'), d.id, v.organization_id
FROM generate_series(2, 101) n, (SELECT * FROM inventory_nodes WHERE name LIKE 'Room %' ORDER BY id LIMIT 50) v, permission_definitions d
WHERE d.name = 'Full' ON CONFLICT DO NOTHING;

INSERT INTO organization_permission_definitions (id, organization_id, name, grants)
SELECT 'def_3' || lpad(to_hex(n), 25, '0'), i.organization_id, 'Definition ' || n, '{people,log_records}' FROM generate_series(1, 50) n, first i;

UPDATE people SET organization_definition_id = @definition WHERE id LIKE 'idn_2%';

INSERT INTO forms (id, organization_id, name, created_at, changed_at)
SELECT 'frm_3' || lpad(to_hex(n), 25, '0'), i.organization_id, 'Form ' || substr(md5(n::text), 1, 12), now(), now() FROM generate_series(1, 200) n, first i;

INSERT INTO questions (id, form_id, position, label, type, required)
SELECT 'qst_3' || lpad(to_hex(n * 1000 + q), 25, '0'), 'frm_3' || lpad(to_hex(n), 25, '0'), q, 'Is part ' || q || ' in order?', 'text', q % 2 = 0
FROM generate_series(1, 200) n, generate_series(1, 40) q;

-- The newest work orders have the form.
UPDATE work_orders SET form_id = @form WHERE id IN (SELECT w.id FROM work_orders w, first i
	WHERE w.organization_id = i.organization_id ORDER BY w.id DESC LIMIT 1000);
