"""Files of records: read straight into arrays, written so that nothing is lost."""
