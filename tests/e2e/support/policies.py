"""Policies for tests. Windows are a year long, so that no test runs into an edge of one."""

RATE_LIMIT_SERVICE = """
domain: test
descriptors:
  - key: five
    rate_limit: { name: Five, unit: year, requests_per_unit: 5 }
  - key: two
    rate_limit: { unit: year, requests_per_unit: 2 }
  - key: bucket
    rate_limit: { name: Bucket, unit: hour, requests_per_unit: 10, algorithm: token_bucket, burst: 3 }
  - key: user
    descriptors:
      - key: path
        rate_limit: { name: PerUserAndPath, unit: year, requests_per_unit: 1 }
  - key: free
    rate_limit: { unlimited: true }
  - key: shadowed
    shadow_mode: true
    rate_limit: { name: Shadowed, unit: year, requests_per_unit: 1 }
  - key: one
    rate_limit: { name: One, unit: year, requests_per_unit: 1 }
  - key: path
    value: "/api/*"
    rate_limit: { name: ApiWildcard, unit: year, requests_per_unit: 2 }
  - key: path
    value: /api/exact
    rate_limit: { name: ApiExact, unit: year, requests_per_unit: 9 }
  - key: path
    rate_limit: { name: AnyPath, unit: year, requests_per_unit: 100 }
  - key: area
    value: shop
    descriptors:
      - key: path
        value: "/api/*"
        rate_limit: { name: ShopApi, unit: year, requests_per_unit: 2 }
  - key: month
    rate_limit: { unit: month, requests_per_unit: 5 }
  - key: week
    rate_limit: { unit: week, requests_per_unit: 5 }
  - key: year
    rate_limit: { unit: year, requests_per_unit: 5 }
  - key: per_user
    rate_limit: { name: PerUser, unit: year, requests_per_unit: 10 }
  - key: per_team
    rate_limit: { name: PerTeam, unit: year, requests_per_unit: 1000 }
"""
