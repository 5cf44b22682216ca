# The worker of the demo agent, from this checkout. For your own agents: copy them instead of `examples`, change CMD.
FROM python:3.13.15-slim-trixie

RUN groupadd --gid 10001 perdure \
    && useradd --uid 10001 --gid perdure --create-home perdure \
    && install --directory --owner perdure --group perdure /var/lib/perdure

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY perdure perdure
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action ignore \
    --constraint constraints.txt '.[cli,openai]'

# The code is root's: the worker can read it, not change it. It writes to /var/lib/perdure.
WORKDIR /srv
COPY deploy/worker_health.py ./
COPY examples examples
ENV PYTHONPATH=/srv PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

USER 10001:10001
CMD ["perdure", "worker", "examples.support.app:app"]
