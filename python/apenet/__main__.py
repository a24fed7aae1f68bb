"""`python -m apenet`: the command `apenet`, for launchers that start modules."""

from apenet_command import main

if __name__ == "__main__":
    main()
