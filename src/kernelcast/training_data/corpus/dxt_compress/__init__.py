"""Compresses an image block by block to four bits a pixel (DXT1)."""
