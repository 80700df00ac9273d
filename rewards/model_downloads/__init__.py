"""What of a model leaves the server: its files with a card about it, one by one, as one archive, or to the Hub.

`files` lists them, `card` writes README.md, `licenses` says under which licence, `sending` answers requests, and `hub`
takes them to the Hugging Face Hub.
"""
