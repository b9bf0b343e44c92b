# The command rowq with all engines' drivers and metrics; compose.yaml uses it.
FROM python:3.12-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tdsodbc unixodbc \
    && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN pip install --no-cache-dir "/source[postgres,mysql,sqlserver,oracle,metrics]" && rm -rf /source
USER nobody
ENTRYPOINT ["rowq"]
