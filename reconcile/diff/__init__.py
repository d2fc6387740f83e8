"""What applying would change, told to people and machines. Pure: dry runs come in as values, text and JSON go out."""
