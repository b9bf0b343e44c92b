"""The settings; the database is that of ROWQ_URL."""

import os

from psycopg import conninfo

_URL = conninfo.conninfo_to_dict(os.environ["ROWQ_URL"])

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _URL.get("dbname"),
        "USER": _URL.get("user"),
        "PASSWORD": _URL.get("password"),
        "HOST": _URL.get("host"),
        "PORT": _URL.get("port"),
    }
}
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["rowq.django", "shop"]
ROOT_URLCONF = "shop.urls"
SECRET_KEY = os.environ.get("SECRET_KEY", "for tests only")
USE_TZ = True
