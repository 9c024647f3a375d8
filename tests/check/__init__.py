"""What tests/run.py is made of: builds, unit programs, black-box suites, fuzz targets, linters, and the count of all."""
