"""How good models are on launches whose groups they have not seen."""
