"""A small Flask server with four client threads that send requests over real sockets, then exits."""

import json
import sys
import threading
import urllib.request

from flask import Flask, jsonify, render_template_string
from werkzeug.serving import make_server

app = Flask(__name__)
GOODS = [{"name": f"thing {number}", "price": number * 7 % 100} for number in range(200)]
PAGE = "<ul>{% for each in goods %}<li>{{ each.name }}: {{ each.price }}</li>{% endfor %}</ul>"


def cheapest(count):
    return sorted(GOODS, key=lambda each: each["price"])[:count]


@app.get("/goods")
def goods():
    return jsonify(cheapest(20))


@app.get("/page")
def page():
    return render_template_string(PAGE, goods=cheapest(100))


def load(address, requests):
    for number in range(requests):
        with urllib.request.urlopen(address + ("/goods" if number % 2 else "/page")) as answer:
            text = answer.read()
            if number % 2:
                json.loads(text)


def main():
    import logging

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, name="server").start()
    address = f"http://127.0.0.1:{server.server_port}"
    clients = [threading.Thread(target=load, args=(address, requests)) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    server.shutdown()
    print("requests:", 4 * requests)


if __name__ == "__main__":
    main()
