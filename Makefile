# One command for each thing a person does. `make demo` and `make test` install what is missing first.
.PHONY: help demo test lint bench docs fuzz setup clean
help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
