"""Networks that pages keep up: built, watched, changed, entered and captured."""
