//! Integer noise for differential privacy, drawn exactly from a CSPRNG.
