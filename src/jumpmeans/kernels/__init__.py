"""Hot loops: arrays in, arrays out. No classes, no files, no fastmath (our sentinels are infinite)."""
