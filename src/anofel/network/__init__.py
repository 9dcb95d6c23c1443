"""The one HTTP client of all roles: addresses, proxies, deadlines."""
