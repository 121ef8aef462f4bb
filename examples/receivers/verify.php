<?php
// Receives Millwright's webhooks: WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:8000 verify.php
declare(strict_types=1);

// Reports whether $body, the request's raw bytes, was signed with $secret within 300 seconds of now.
function verify(string $header, string $body, string $secret): bool
{
    $times = $signatures = [];
    foreach (explode(',', $header) as $part) {
        if (str_starts_with($part, 't=')) {
            $times[] = substr($part, 2);
        } elseif (str_starts_with($part, 'v1=')) {
            $signatures[] = substr($part, 3);
        }
    }
    if (count($times) !== 1 || !preg_match('/\A[0-9]{1,12}\z/', $times[0])) {
        return false;
    }
    if (abs(time() - (int) $times[0]) > 300) {
        return false;
    }
    $want = hash_hmac('sha256', $times[0] . '.' . $body, $secret);
    foreach ($signatures as $given) {
        if (hash_equals($want, $given)) {
            return true;
        }
    }
    return false;
}

// Put your table or queue here, with a unique id: ignore a known event.
function keep(array $event): void
{
    $record = $event['data']['work_order'] ?? $event['data']['issue'] ?? null; // a ping has neither
    error_log(implode(' ', [$event['id'], $event['type'], $record['id'] ?? '', $record['changed_at'] ?? '']));
}

http_response_code(500); // unless everything succeeds; PHP may return 200 after an exception
$secret = getenv('WEBHOOK_SECRET');
if ($secret === false || $secret === '') {
    throw new RuntimeException('WEBHOOK_SECRET is not set');
}
$body = file_get_contents('php://input', false, null, 0, 1 << 20); // no delivery is longer
if (!verify($_SERVER['HTTP_SERVICE_SIGNATURE'] ?? '', $body, $secret)) {
    http_response_code(400);
} else {
    keep(json_decode($body, true, 512, JSON_THROW_ON_ERROR)); // after an exception it is sent again
    http_response_code(204); // stored; do the work later
}
