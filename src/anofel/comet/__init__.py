"""What CometBFT hashes and signs, and its wire format: for validators and for whoever checks them."""
