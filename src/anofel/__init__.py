"""Anonymous and private federated learning over a public bulletin board."""
