"""What a program keeps on its own disk: files, sections that people write, a private database, secrets."""
