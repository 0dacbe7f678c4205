"""How everything that cagat draws and writes for people looks: colours, pages and tables, in one place."""
