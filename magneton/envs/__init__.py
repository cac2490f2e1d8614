"""Interpreters for systems: the user's own, the running one, or an environment made on first use.

In: a system's description and a kind of device. Out: the interpreter to run it in. An environment is whole or
does not count, however its installation ended; it is never removed while something runs in it.

```
cache/environments/NAME-KIND-DIGEST             the environment; counts once its marker is in it
                   NAME-KIND-DIGEST.lock        exclusive: being made or removed; shared: in use
                   NAME-KIND-DIGEST.log         what pip said
                   NAME-KIND-DIGEST.downloads   what was downloaded, until the environment is ready
                   NAME-KIND-DIGEST.tmp         where pip works meanwhile
```
"""
