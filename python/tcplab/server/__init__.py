"""The browser interface's server: scenarios, runs and results of one directory, over HTTP and WebSockets."""
