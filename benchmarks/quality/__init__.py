"""Quality of the results: agreement with known groups, stability, calibration."""
