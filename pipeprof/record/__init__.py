"""Floor 0: what a run is. The tables (`schema`), the manifest (`run`) and the Parquet files (`store`)."""
