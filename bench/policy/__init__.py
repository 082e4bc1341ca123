"""Policy decisions against other engines in the same run; a project of its own because of what it installs."""
