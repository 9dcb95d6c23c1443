//! Committee encryption: threshold encryption of update vectors and of the count.
