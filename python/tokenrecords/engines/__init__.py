"""What each engine sends, and the tokens in it; records are not known here."""
