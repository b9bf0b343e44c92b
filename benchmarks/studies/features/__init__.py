"""The study `features`: what each feature of rowq costs while it is on, in statements and in work.

features.py is the table of features: a line more there is a line more on the page. meter.py reads
what calls cost, courses.py passes messages through a feature's queue, idle.py calls maintain where
nothing is due, recurring.py does with other queues what a schedule does.
"""
