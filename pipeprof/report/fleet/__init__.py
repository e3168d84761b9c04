"""Questions over many runs: what their rollups say, gathered once and kept, asked in SQL, and shown as a report."""
