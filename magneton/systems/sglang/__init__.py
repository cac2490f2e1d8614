"""SGLang: its scheduler, what it is given, and how it is imported."""
