package web

// StatusAbandoned is in the log and the metrics for a request whose client has closed the
// connection, and gets no response. Reverse proxies use the same number.
const StatusAbandoned = 499
