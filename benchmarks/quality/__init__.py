"""Are the answers right?"""
