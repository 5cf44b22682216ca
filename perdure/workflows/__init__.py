"""The one workflow and its pure parts. Imports only the standard library, temporalio, contracts and errors."""
