"""PostgreSQL, Redis, disks, HTTP and jobs: what the product stands on. It knows no stage."""
